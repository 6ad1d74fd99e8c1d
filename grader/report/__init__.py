"""Reports: each module draws one form of a Record, and from the Record alone."""
