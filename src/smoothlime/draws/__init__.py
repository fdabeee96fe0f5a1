"""Draws of standard normal points: sequences, designs, rotations and longer draws."""
