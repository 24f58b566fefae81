"""What a caller decides in an exchange with a target: what it needs, what a refusal means, what it owes."""
