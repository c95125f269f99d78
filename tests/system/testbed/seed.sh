# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=sh disable=SC2154
# Creates what confluent-kafka's admin client cannot: quotas, default broker configs, delegation tokens and their ACLs.
# Without $protected, nothing that needs an authorizer or a secret of the brokers.
# seed.py feeds it to sh on a broker host, after assignments of clients=HOST:PORT and passwords.
set -eu
bin=/opt/kafka/bin

login() { # login USER PASSWORD: print client properties of a SCRAM user
    cat <<EOF
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="$1" password="$2";
ssl.truststore.type=PKCS12
ssl.truststore.location=$truststore
ssl.truststore.password=$keystore_password
EOF
}

login quorumshift "$quorumshift_password" > /run/admin.properties
configs="$bin/kafka-configs.sh --bootstrap-server $clients --command-config /run/admin.properties --alter"

$configs --entity-type users --entity-name app1 --add-config producer_byte_rate=52428800,request_percentage=300
$configs --entity-type users --entity-default --add-config consumer_byte_rate=104857600
$configs --entity-type clients --entity-name nightly-export --add-config producer_byte_rate=1048576,consumer_byte_rate=2097152
$configs --entity-type clients --entity-default --add-config request_percentage=400
$configs --entity-type users --entity-name app1 --entity-type clients --entity-name batch --add-config consumer_byte_rate=4194304
$configs --entity-type users --entity-name app2 --entity-type clients --entity-default --add-config controller_mutation_rate=50
$configs --entity-type users --entity-default --entity-type clients --entity-name nightly-export --add-config producer_byte_rate=524288
$configs --entity-type users --entity-default --entity-type clients --entity-default --add-config consumer_byte_rate=209715200
$configs --entity-type users --entity-name 'CN=legacy loader,O=ops' --add-config producer_byte_rate=8388608
$configs --entity-type ips --entity-name 192.0.2.10 --add-config connection_creation_rate=20
$configs --entity-type ips --entity-default --add-config connection_creation_rate=2000

$configs --entity-type brokers --entity-default --add-config message.max.bytes=2097152,max.connections=20000
$configs --entity-type brokers --entity-name "$second_broker" --add-config num.io.threads=9,log.cleaner.threads=2
if [ -z "$protected" ]; then
    rm /run/admin.properties
    exit
fi
# Encrypted in ZooKeeper with password.encoder.secret; the listener need not exist yet.
printf 'listener.name.external.ssl.keystore.password=%s\n' "$external_keystore_password" > /run/seed.properties
$configs --entity-type brokers --entity-name "$first_broker" --add-config-file /run/seed.properties

$bin/kafka-acls.sh --bootstrap-server "$clients" --command-config /run/admin.properties \
    --add --allow-principal User:app1 --operation Describe --delegation-token '*'

for user in app1 app2; do
    eval "password=\$${user}_password"
    login "$user" "$password" > /run/seed.properties
    $bin/kafka-delegation-tokens.sh --bootstrap-server "$clients" --create --max-life-time-period -1 \
        --renewer-principal User:app2 --command-config /run/seed.properties
done
rm /run/seed.properties /run/admin.properties
