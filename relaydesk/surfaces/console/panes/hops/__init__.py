"""What was asked through relays lately, and who was charged for what failed."""
