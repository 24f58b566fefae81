"""Which names a certificate may carry."""
