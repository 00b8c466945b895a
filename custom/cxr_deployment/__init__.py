"""Jobs on deployed FLARE systems: POC on one machine, and provisioned ones."""
