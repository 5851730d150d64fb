"""The HTTP plumbing of `token_server.py`: what any deployment needs. What one decides stands there."""
