"""Machines of EC2 for a fleet: `fleet up --machines ec2.py` makes what is missing, `fleet down --machines ec2.py` ends all.

    python ec2.py up|down FLEET

A fleet's machines are those with the tag `feedstock-tools-fleet`, so a second `up` makes none and `down` finds each one,
whatever became of the process that made it. It needs boto3 and its credentials, which stay on this machine.

    FLEET_EC2_IMAGE        the image, such as Debian 12 for this region (needed)
    FLEET_EC2_KEY          the name of the SSH key (needed)
    FLEET_EC2_TYPE         the type of machine (c7i.8xlarge)
    FLEET_EC2_COUNT        the number of machines (1)
    FLEET_EC2_GROUP        the security group: SSH from here, the port of the hub from here and from the machines
    FLEET_EC2_DISK         GiB of disk (200)
    FLEET_EC2_SPOT         `yes` for spot machines, which the provider may end

Other providers: a program that is called in the same way. `up` must return when the machines answer SSH or will soon, may
be called again, and makes none twice; `down` must find what any `up` has made. Status 0 means that it has succeeded.
"""

import os
import sys

TAG = "feedstock-tools-fleet"
ALIVE = ["pending", "running", "stopping", "stopped"]


def machines(ec2, fleet):
    """The machines of a fleet that have not been ended."""
    filters = [{"Name": f"tag:{TAG}", "Values": [fleet]}, {"Name": "instance-state-name", "Values": ALIVE}]
    pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
    return [machine for page in pages for group in page["Reservations"] for machine in group["Instances"]]


def name_of(machine):
    """The name of a machine: its tag."""
    return next((tag["Value"] for tag in machine.get("Tags", []) if tag["Key"] == "Name"), "")


def up(ec2, fleet, settings):
    """Make the machines that a fleet lacks, and wait until all run; returns the names of those made."""
    known = machines(ec2, fleet)
    count = int(settings.get("FLEET_EC2_COUNT", "1"))
    wanted = [f"{fleet}-{number}" for number in range(1, count + 1)]
    missing = [name for name in wanted if name not in {name_of(machine) for machine in known}]
    stopped = [machine["InstanceId"] for machine in known if machine["State"]["Name"] == "stopped"]
    if stopped:
        ec2.start_instances(InstanceIds=stopped)
    for name in missing:
        ec2.run_instances(**request(fleet, name, settings))
    all_of_them = [machine["InstanceId"] for machine in machines(ec2, fleet)]
    ec2.get_waiter("instance_running").wait(InstanceIds=all_of_them)
    return missing


def request(fleet, name, settings):
    """The request for one machine. The tags come with it: no machine exists without them."""
    tags = [{"Key": TAG, "Value": fleet}, {"Key": "Name", "Value": name}]
    disk = {"VolumeSize": int(settings.get("FLEET_EC2_DISK", "200")), "VolumeType": "gp3", "DeleteOnTermination": True}
    asked = {
        "ImageId": settings["FLEET_EC2_IMAGE"],
        "KeyName": settings["FLEET_EC2_KEY"],
        "InstanceType": settings.get("FLEET_EC2_TYPE", "c7i.8xlarge"),
        "MinCount": 1,
        "MaxCount": 1,
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": disk}],
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {"HttpTokens": "required"},
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")],
    }
    if settings.get("FLEET_EC2_GROUP"):
        asked["SecurityGroupIds"] = [settings["FLEET_EC2_GROUP"]]
    if settings.get("FLEET_EC2_SPOT") == "yes":
        asked["InstanceMarketOptions"] = {"MarketType": "spot"}
    return asked


def down(ec2, fleet):
    """End all machines of a fleet, and wait until they have ended; returns their names."""
    found = machines(ec2, fleet)
    numbers = [machine["InstanceId"] for machine in found]
    if numbers:
        ec2.terminate_instances(InstanceIds=numbers)
        ec2.get_waiter("instance_terminated").wait(InstanceIds=numbers)
    return [name_of(machine) for machine in found]


def main(words):
    """Do what `fleet up` and `fleet down` ask for."""
    if len(words) != 2 or words[0] not in ("up", "down"):
        sys.exit("usage: python ec2.py up|down FLEET")
    missing = [name for name in ("FLEET_EC2_IMAGE", "FLEET_EC2_KEY") if words[0] == "up" and not os.environ.get(name)]
    if missing:
        sys.exit(f"ec2.py: {' and '.join(missing)} must be set")
    try:
        import boto3
    except ImportError:
        sys.exit("ec2.py: boto3 is missing: pip install 'feedstock-tools[s3]'")
    ec2 = boto3.client("ec2")
    changed = up(ec2, words[1], os.environ) if words[0] == "up" else down(ec2, words[1])
    print(f"{'made' if words[0] == 'up' else 'ended'}: {', '.join(changed) or 'none'}")


if __name__ == "__main__":
    main(sys.argv[1:])
