#!/bin/sh
# Makes one AppCDS archive for all programs: runs each once on loopback and records the classes that it loads. JVM
# start-up dominates a rolling restart on two cores.
set -eu
run=/opt/kafka/bin/kafka-run-class.sh
work=/root/build/cds
mkdir -p "$work"
cd "$work"
export KAFKA_HEAP_OPTS=-Xmx384m

record() { # record NAME CLASS ARGS...: exec Java and record the classes that it loads; with &, $! is Java's pid
    list=$1
    shift
    export KAFKA_CDS_OPTS="-Xshare:off -XX:DumpLoadedClassList=$work/$list.classes"
    exec "$run" "$@"
}

record_server() { # like record, with a log that wait_log can read
    export KAFKA_LOG4J_CONFIG=$work/log4j.properties
    record "$@"
}

record_tool() ( # like record, for a program that exits by itself
    record "$@"
)

await() { # await NAME PID WHAT COMMAND...: retry the command until it succeeds, while the program runs
    name=$1 pid=$2 what=$3 tries=0
    shift 3
    until "$@" 2>/dev/null; do
        tries=$((tries + 1))
        kill -0 "$pid" 2>/dev/null || what="$what, and it exited"
        if [ "$tries" -gt 480 ] || ! kill -0 "$pid" 2>/dev/null; then
            echo "$name: no $what within 120 s; its log:" >&2
            tail -n 50 "$work/$name.log" >&2
            exit 1
        fi
        sleep 0.25
    done
}

wait_port() { # wait_port PORT NAME PID
    await "$2" "$3" "listener on port $1" \
        python3 -c "import socket; socket.create_connection(('127.0.0.1', $1), 1)"
}

wait_log() { # wait_log PATTERN NAME PID
    await "$2" "$3" "line '$1'" grep -q -e "$1" "$work/$2.log"
}

stop() { # stop NAME PID
    kill "$2" || { echo "$1 exited by itself; its log:" >&2; grep -v '^\[.*INFO' "$work/$1.log" | tail -n 50 >&2; exit 1; }
    wait "$2" || true
}

ip link set lo up 2>/dev/null || true
cat > zoo.cfg <<EOF
dataDir=$work/zookeeper
clientPort=2181
admin.enableServer=false
standaloneEnabled=false
initLimit=10
syncLimit=5
server.1=127.0.0.1:2888:3888
EOF
mkdir zookeeper
echo 1 > zookeeper/myid

keytool -genkeypair -alias server -keyalg RSA -dname CN=cds -storetype PKCS12 -keystore ks.p12 -storepass cdscds 2>/dev/null
cat > common.properties <<EOF
zookeeper.connect=127.0.0.1:2181/cds
zookeeper.metadata.migration.enable=true
controller.quorum.voters=101@127.0.0.1:9093
controller.listener.names=CONTROLLER
inter.broker.listener.name=INTERNAL
listener.security.protocol.map=CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,CLIENTS:SASL_SSL
super.users=User:ANONYMOUS
password.encoder.secret=cds
EOF
cat common.properties - > controller.properties <<EOF
process.roles=controller
node.id=101
listeners=CONTROLLER://127.0.0.1:9093
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
log.dirs=$work/controller
EOF
cat common.properties - > hybrid.properties <<EOF
broker.id=1
listeners=INTERNAL://127.0.0.1:9092,CLIENTS://127.0.0.1:9094
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.clients.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PKCS12
ssl.keystore.location=$work/ks.p12
ssl.keystore.password=cdscds
delegation.token.secret.key=cds
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
inter.broker.protocol.version=3.9
log.dirs=$work/broker
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
EOF
sed -e '/^zookeeper/d' -e '/^inter.broker.protocol/d' -e '/^password.encoder/d' -e 's/^broker.id=/node.id=/' \
    -e 's/^authorizer.class.name=.*/authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer/' \
    hybrid.properties > kraft.properties
echo process.roles=broker >> kraft.properties

cat > log4j.properties <<EOF
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
EOF
export KAFKA_LOG4J_CONFIG=/opt/kafka/config/tools-log4j.properties
record zookeeper org.apache.zookeeper.server.quorum.QuorumPeerMain zoo.cfg > zookeeper.log 2>&1 &
zookeeper=$!
wait_port 2181 zookeeper "$zookeeper"
record_server broker_zk kafka.Kafka hybrid.properties --override zookeeper.metadata.migration.enable=false \
    --override controller.quorum.voters= --override controller.listener.names= > broker_zk.log 2>&1 &
broker=$!
wait_log 'KafkaServer id=1\] started' broker_zk "$broker"
record_tool acls kafka.admin.AclCommand --bootstrap-server 127.0.0.1:9092 --add --allow-principal User:a --operation Read --topic t
record_tool topics org.apache.kafka.tools.TopicCommand --bootstrap-server 127.0.0.1:9092 --create --topic t
record_tool configs kafka.admin.ConfigCommand --zookeeper 127.0.0.1:2181/cds --alter --entity-type users --entity-name a \
    --add-config 'SCRAM-SHA-512=[password=a]'
stop broker_zk "$broker"
echo 'get /cluster/id' | record_tool shell org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka \
    -server 127.0.0.1:2181/cds > cluster_id.txt 2>&1
cluster_id=$(sed -n 's/.*"id":"\([^"]*\)".*/\1/p' cluster_id.txt)
record_tool storage kafka.tools.StorageTool format --cluster-id="$cluster_id" --config controller.properties
record_server controller kafka.Kafka controller.properties > controller.log 2>&1 &
controller=$!
wait_port 9093 controller "$controller"
record_server broker_hybrid kafka.Kafka hybrid.properties > broker_hybrid.log 2>&1 &
broker=$!
wait_log 'transitioning from .* to DUAL_WRITE state' controller "$controller"
stop broker_hybrid "$broker"
record_server broker_kraft kafka.Kafka kraft.properties > broker_kraft.log 2>&1 &
broker=$!
wait_log 'Kafka Server started' broker_kraft "$broker"
stop broker_kraft "$broker"
record_tool dump kafka.tools.DumpLogSegments --cluster-metadata-decoder --files \
    controller/__cluster_metadata-0/00000000000000000000.log > dump.txt
grep -q TOPIC_RECORD dump.txt || { echo 'no metadata reached KRaft while classes were recorded:' >&2; tail -n 40 controller.log >&2; exit 1; }
stop controller "$controller"
stop zookeeper "$zookeeper"

sort -u ./*.classes > all.classes
KAFKA_CDS_OPTS="-Xshare:dump -XX:SharedClassListFile=$work/all.classes -XX:SharedArchiveFile=/opt/kafka/libs/app.jsa" \
    "$run" > archive.log 2>&1 || { tail -n 20 archive.log >&2; exit 1; }
chmod 0644 /opt/kafka/libs/app.jsa
