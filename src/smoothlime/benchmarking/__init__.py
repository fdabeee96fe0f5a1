"""Which method suits a model: contenders, their times and errors on a user's own rows."""
