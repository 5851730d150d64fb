"""What stands in for the cloud on one machine. The agent, the memory module and the page work without it."""
