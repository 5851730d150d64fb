"""Speech, models, server and terminal of a run on one machine. With LiveKit Cloud nothing here is needed."""
