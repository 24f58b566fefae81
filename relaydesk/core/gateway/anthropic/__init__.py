"""Anthropic's Messages dialect: its requests as chats, its answers as content blocks."""
