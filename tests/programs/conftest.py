"""The programs make their clients when they are imported, so only the tests import them."""

collect_ignore = ["boto3_tasks.py", "pynamodb_shop.py"]
