"""Facts out of what a user says: rules, a chat model's prompt and reply, and the queue to them."""
