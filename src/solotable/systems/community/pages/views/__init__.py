"""What pages show: records that templates read, made from entities without I/O."""
