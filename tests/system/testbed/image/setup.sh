#!/bin/sh
# Users, directories and services of a host; runs once, when the image is built.
set -eu

# Fixed ids: hosts.py sets files' owners by number.
groupadd --gid 480 zookeeper
groupadd --gid 490 kafka
useradd --uid 480 --gid 480 --home-dir /var/lib/zookeeper --no-create-home --shell /usr/sbin/nologin zookeeper
useradd --uid 490 --gid 490 --home-dir /var/lib/kafka --no-create-home --shell /usr/sbin/nologin kafka
install -d -o root -g root -m 0755 /etc/kafka /etc/zookeeper /var/lib/kafka
install -d -o kafka -g kafka -m 0750 /var/log/kafka
install -d -o zookeeper -g zookeeper -m 0750 /var/lib/zookeeper /var/log/zookeeper

install -d -m 0700 /root/.ssh
ssh-keygen -A
systemctl enable ssh.service

# Units without meaning in a container, and timers that would disturb measurements.
for unit in getty.target console-getty.service systemd-logind.service systemd-timesyncd.service \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer; do
    ln -sf /dev/null "/etc/systemd/system/$unit"
done

# Each host creates its own at its first boot.
: > /etc/machine-id
rm -f /var/lib/dbus/machine-id
rm -rf /var/cache/apt/archives/*.deb /var/lib/apt/lists/* /usr/share/doc/* /usr/share/man/*
