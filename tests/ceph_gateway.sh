#!/bin/bash
# Ceph's gateway, a real S3 server, on a loopback address, for tests and campaigns that take one by OPTSTREAM_TEST_S3.
#
#   apt-get install --no-install-recommends radosgw ceph-mon ceph-osd
#   tests/ceph_gateway.sh FOLDER 17480 &           # until it is ended; the folder must be new or empty
#   OPTSTREAM_TEST_S3=http://127.0.0.1:17480 .venv/bin/pytest tests/optstream/catalogue/backends
#
# One monitor, one storage daemon that keeps all in memory (it forgets when it ends), one gateway; about 1 GB.
set -euo pipefail
folder=$(realpath -m "$1") port=$2
mkdir -p "$folder"/{monitor,storage,log}
export CEPH_CONF=$folder/ceph.conf
identifier=$(uuidgen)
monitor="[v2:127.0.0.1:$((port + 1)),v1:127.0.0.1:$((port + 2))]"
cat > "$CEPH_CONF" <<END
[global]
fsid = $identifier
mon initial members = a
mon host = $monitor
public network = 127.0.0.0/8
keyring = $folder/keyring
run dir = $folder
admin socket = $folder/\$name.asok
pid file = $folder/\$name.pid
log file = $folder/log/\$name.log
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail crit = 1
mon data = $folder/monitor
osd data = $folder/storage
osd objectstore = memstore
memstore device bytes = 1073741824
END
trap 'kill $(jobs -p) 2> /dev/null' EXIT
ceph-authtool --create-keyring "$folder/keyring" --gen-key -n mon. --cap mon 'allow *'
ceph-authtool "$folder/keyring" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *'
monmaptool --create --fsid "$identifier" --addv a "$monitor" "$folder/map"
ceph-mon --mkfs -i a --monmap "$folder/map" --keyring "$folder/keyring"
ceph-mon -i a --foreground &> "$folder/log/monitor" &
timeout 300 ceph osd new "$identifier"
ceph auth get-or-create osd.0 mon 'allow profile osd' osd 'allow *' >> "$folder/keyring"
ceph-osd -i 0 --mkfs --osd-uuid "$identifier" --no-mon-config
ceph-osd -i 0 --foreground &> "$folder/log/storage" &
radosgw -n client.admin --rgw-frontends "beast endpoint=127.0.0.1:$port" --foreground &> "$folder/log/gateway" &
until curl --silent --max-time 5 "http://127.0.0.1:$port" > /dev/null; do sleep 1; done
radosgw-admin user create --uid tests --display-name tests --access-key testing --secret-key only-for-tests
wait
