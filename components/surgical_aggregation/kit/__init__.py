"""What the services of a startup kit run, at the server and at sites, before any job's process."""
