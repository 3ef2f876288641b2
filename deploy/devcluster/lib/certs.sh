# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# One CA for each cluster, a certificate for each client, and kubeconfigs that contain them.

certs_ca() {
    local dir=$STATE/pki
    mkdir -p "$dir"
    chmod 700 "$dir"
    [[ -s $dir/ca.crt ]] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 \
        -subj "/CN=$ID" -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature \
        -keyout "$dir/ca.key" -out "$dir/ca.crt" 2>"$STATE/logs/openssl.log"
    [[ -s $dir/sa.key ]] || openssl genrsa -out "$dir/sa.key" 2048 2>>"$STATE/logs/openssl.log"
}

# cert_create NAME SUBJECT [SUBJECT-ALT-NAMES]: a certificate for a client; with names, also for a server.
cert_create() {
    local dir=$STATE/pki name=$1 usage=clientAuth alt=
    [[ ! -s $dir/$name.crt ]] || return 0
    [[ -z ${3:-} ]] || { usage=serverAuth,clientAuth && alt=subjectAltName=$3; }
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$2" \
        -keyout "$dir/$name.key" -out "$dir/$name.csr" 2>>"$STATE/logs/openssl.log"
    openssl x509 -req -in "$dir/$name.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -days 3650 \
        -set_serial "0x$(openssl rand -hex 8)" \
        -extfile <(printf 'keyUsage=critical,digitalSignature\nextendedKeyUsage=%s\n%s\n' "$usage" "$alt") \
        -out "$dir/.$name.crt" 2>>"$STATE/logs/openssl.log"
    mv "$dir/.$name.crt" "$dir/$name.crt"
}

kubeconfig_write() { # FILE CERTIFICATE-NAME
    local dir=$STATE/pki
    cat >"$1" <<EOF
apiVersion: v1
kind: Config
clusters:
- name: $CLUSTER
  cluster: {server: "$API_URL", certificate-authority-data: "$(base64 -w0 "$dir/ca.crt")"}
users:
- name: $2
  user: {client-certificate-data: "$(base64 -w0 "$dir/$2.crt")", client-key-data: "$(base64 -w0 "$dir/$2.key")"}
contexts:
- name: $CLUSTER
  context: {cluster: $CLUSTER, user: $2}
current-context: $CLUSTER
EOF
    chmod 600 "$1"
}

# client_create NAME SUBJECT: certificate and kubeconfig pki/NAME.conf.
client_create() {
    cert_create "$1" "$2"
    [[ -s $STATE/pki/$1.conf ]] || kubeconfig_write "$STATE/pki/$1.conf" "$1"
}
