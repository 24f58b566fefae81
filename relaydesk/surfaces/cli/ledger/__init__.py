"""``relaydesk ledger``: credit of the relay network."""
