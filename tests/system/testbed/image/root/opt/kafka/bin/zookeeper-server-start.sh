#!/bin/sh
exec /opt/kafka/bin/kafka-run-class.sh org.apache.zookeeper.server.quorum.QuorumPeerMain "$@"
