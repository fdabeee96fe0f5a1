"""What is served on a port: `live/` is the page that `smoothlime demo` and `smoothlime serve` open."""
