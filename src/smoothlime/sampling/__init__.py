"""From a question to an explanation: options, defaults, a plan, the one loop, and the exact route beside it."""
