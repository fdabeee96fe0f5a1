"""The live page: what is asked of it, and what it answers look by look."""
