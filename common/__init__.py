"""What two or more apps use and that knows no app."""
