"""What finished runs measured: where it is stored, and how it is compared and shown."""
