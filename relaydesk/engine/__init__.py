"""asyncio services: what runs the rules of core."""
