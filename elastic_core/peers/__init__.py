"""The other systems, one file each: what ELASTIC is compared with."""
