"""The ports made real: embedders and re-rankers. Nothing here is imported before it is chosen (`pick.choose`)."""
