"""What server and sites must agree on."""
