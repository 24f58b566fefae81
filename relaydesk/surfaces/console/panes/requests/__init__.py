"""What clients have asked, and where the time went."""
