"""Trees of other libraries, read and proved: one file for each library."""
