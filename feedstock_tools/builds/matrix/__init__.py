"""What has become of every configuration of a feedstock."""
