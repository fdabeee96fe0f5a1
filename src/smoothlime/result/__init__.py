"""What comes back: explanations, where they come from, and arithmetic with their errors."""
