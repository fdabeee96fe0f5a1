"""What is served on a port: `live/` is the page of `smoothlime demo` and `serve`, `api/` the service for programs."""
