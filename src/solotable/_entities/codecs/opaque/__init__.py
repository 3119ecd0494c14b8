"""Fields that are stored in a form DynamoDB cannot look into: compressed, encrypted or offloaded."""
