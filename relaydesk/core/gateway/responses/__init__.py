"""The Responses dialect of OpenAI: its requests as chats, its answers as items and typed events."""
