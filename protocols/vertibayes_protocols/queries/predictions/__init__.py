"""Questions about log odds of records whose values lie at several sites."""
