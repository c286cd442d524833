"""What belongs to the application: bundle walk and entry programs."""
