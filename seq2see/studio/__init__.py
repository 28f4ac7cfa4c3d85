"""The studio: models behind HTTP, and the page where people look inside them. Needs the extra `studio`."""
