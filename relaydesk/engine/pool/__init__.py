"""The models this node knows, and the engines that are loaded for them."""
