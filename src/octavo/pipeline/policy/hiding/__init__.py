"""What is hidden looks absent: in what is answered, when it is answered, and in older versions."""
