#!/bin/sh
# Runs one Java class with Kafka's jars. The class path is explicit and sorted: an AppCDS archive is valid only for the
# class path of its dump.
set -eu
export LC_ALL=C
base=/opt/kafka
class_path=
for jar in "$base"/libs/*.jar; do
    class_path="$class_path${class_path:+:}$jar"
done
# shellcheck disable=SC2086  # options are lists of words
exec java ${KAFKA_HEAP_OPTS:--Xmx256m} \
    -XX:+UseSerialGC -XX:TieredStopAtLevel=1 ${KAFKA_CDS_OPTS--Xshare:auto -XX:SharedArchiveFile=$base/libs/app.jsa} \
    -Djava.awt.headless=true -Djdk.tls.ephemeralDHKeySize=2048 \
    ${KAFKA_LOG4J_OPTS:--Dlog4j.configuration=file:${KAFKA_LOG4J_CONFIG:-$base/config/tools-log4j.properties}} \
    ${KAFKA_OPTS:-} -cp "$class_path" "$@"
