# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# etcd, API server, controller manager, scheduler and DNS. They are processes in the namespace "holder-control", which also
# contains the bridge of the nodes. All clusters have the same addresses, because nothing of them is visible outside.

NET_PREFIX=172.30.0           # control plane .1, node i is .(10 + i)
POD_CIDR=10.244.0.0/16        # node i has 10.244.i.0/24
SERVICE_CIDR=10.96.0.0/16
API_ADDRESS=$NET_PREFIX.1
API_URL=https://$API_ADDRESS:6443
CONTROL_PROCESSES=(etcd kube-apiserver kube-controller-manager kube-scheduler coredns)

control_network() {
    holder_net holder-control ip link show br0 >/dev/null 2>&1 && return 0
    holder_net holder-control ip -batch - <<EOF
link set lo up
link add br0 type bridge
addr add $API_ADDRESS/24 dev br0
link set br0 up
EOF
}

control_certs() {
    certs_ca
    cert_create apiserver "/CN=kube-apiserver" "IP:$API_ADDRESS,IP:${SERVICE_CIDR%.*}.1,IP:127.0.0.1,DNS:localhost,$(
        printf 'DNS:%s,' kubernetes{,.default{,.svc{,.cluster.local}}}
    )DNS:$ID"
    cert_create kubelet-client "/O=system:masters/CN=kube-apiserver-kubelet-client"
    cert_create front-proxy "/CN=front-proxy"
    client_create admin "/O=system:masters/CN=admin"
    cp "$STATE/pki/admin.conf" "$STATE/kubeconfig"
}

# Certificates that nobody needs before the API server is ready.
client_certs() {
    client_create controller-manager "/CN=system:kube-controller-manager"
    client_create scheduler "/CN=system:kube-scheduler"
    client_create kube-proxy "/CN=system:kube-proxy"
    client_create coredns "/CN=system:coredns"
}

etcd_start() {
    process_start etcd "$CGROUP/control" holder-control etcd --name "$CLUSTER" --data-dir "$STATE/etcd" \
        --unsafe-no-fsync --quota-backend-bytes 4294967296 --auto-compaction-retention 10m \
        --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
        --listen-peer-urls http://127.0.0.1:2380 --log-level warn
}

apiserver_start() {
    local pki=$STATE/pki
    process_start kube-apiserver "$CGROUP/control" holder-control kube-apiserver \
        --advertise-address="$API_ADDRESS" --bind-address=0.0.0.0 --secure-port=6443 \
        --etcd-servers=http://127.0.0.1:2379 --service-cluster-ip-range="$SERVICE_CIDR" \
        --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
        --kubelet-client-certificate="$pki/kubelet-client.crt" --kubelet-client-key="$pki/kubelet-client.key" \
        --kubelet-preferred-address-types=InternalIP \
        --proxy-client-cert-file="$pki/front-proxy.crt" --proxy-client-key-file="$pki/front-proxy.key" \
        --requestheader-client-ca-file="$pki/ca.crt" --requestheader-allowed-names=front-proxy \
        --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
        --requestheader-extra-headers-prefix=X-Remote-Extra- \
        --service-account-issuer=https://kubernetes.default.svc.cluster.local \
        --service-account-key-file="$pki/sa.key" --service-account-signing-key-file="$pki/sa.key" \
        --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
        --max-requests-inflight=2000 --max-mutating-requests-inflight=1000 --profiling=false
}

api_ready() { [[ $(api_get /readyz) == ok ]]; }
api_get() { # PATH
    holder_net holder-control curl --silent --max-time 20 --cacert "$STATE/pki/ca.crt" --cert "$STATE/pki/admin.crt" \
        --key "$STATE/pki/admin.key" "$API_URL$1"
}

apiserver_wait() { wait_until 120 "the API server" --alive etcd --alive kube-apiserver api_ready; }

# With kwok, the Leases of thousands of nodes are renewed less often, so the controller notices a silent node later. If
# the machine is so busy that the API server needs long to start, kubelets may stand still for a while, too.
controllers_start() {
    local grace=20s
    [[ $((SECONDS - STARTED_AT)) -lt 20 ]] || grace=60s
    [[ $KWOK -eq 0 ]] || grace=100s
    process_start kube-controller-manager "$CGROUP/control" holder-control kube-controller-manager \
        --kubeconfig="$STATE/pki/controller-manager.conf" --authentication-kubeconfig="$STATE/pki/controller-manager.conf" \
        --authorization-kubeconfig="$STATE/pki/controller-manager.conf" --bind-address=127.0.0.1 \
        --root-ca-file="$STATE/pki/ca.crt" --service-account-private-key-file="$STATE/pki/sa.key" \
        --cluster-signing-cert-file="$STATE/pki/ca.crt" --cluster-signing-key-file="$STATE/pki/ca.key" \
        --use-service-account-credentials=true --leader-elect=false --node-monitor-grace-period=$grace \
        --node-monitor-period=2s --kube-api-qps=500 --kube-api-burst=1000 --profiling=false
    process_start kube-scheduler "$CGROUP/control" holder-control kube-scheduler \
        --kubeconfig="$STATE/pki/scheduler.conf" --authentication-kubeconfig="$STATE/pki/scheduler.conf" \
        --authorization-kubeconfig="$STATE/pki/scheduler.conf" --bind-address=127.0.0.1 --leader-elect=false \
        --kube-api-qps=1000 --kube-api-burst=2000 --profiling=false
}

# Answers for cluster.local come from the API, with a time to live that tests of failover can wait for. Other names do not
# exist, and the answer comes at once, because no network leads out of the cluster.
dns_start() {
    [[ -s $STATE/Corefile ]] || cat >"$STATE/Corefile" <<EOF
cluster.local in-addr.arpa ip6.arpa {
    bind $API_ADDRESS
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig $STATE/pki/coredns.conf
        pods insecure
        ttl 1
    }
}
. {
    bind $API_ADDRESS
    errors
    template ANY ANY {
        rcode NXDOMAIN
    }
}
EOF
    process_start coredns "$CGROUP/control" holder-control coredns -conf "$STATE/Corefile"
}

# CoreDNS listens once it has the objects of the API server.
# shellcheck disable=SC2016
dns_listens() { holder_net holder-control bash -c 'exec 3<>"/dev/tcp/$0/53"' "$API_ADDRESS"; }

# kubeadm would also create this. The API server brings the role of kube-proxy, but not the role of CoreDNS.
control_rbac() {
    kubectl_own apply -f - >/dev/null <<'EOF'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:coredns"}
rules:
- {apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:coredns"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:coredns"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:coredns"}
EOF
}

# Pods can be created once the controller has created the ServiceAccount of the namespace.
namespace_ready() { [[ $(api_get /api/v1/namespaces/default/serviceaccounts/default) == *'"uid"'* ]]; }
scheduler_ready() { [[ $(holder_net holder-control curl -sk --max-time 20 https://127.0.0.1:10259/readyz) == ok ]]; }

control_start() {
    holder_start holder-control "$CGROUP/control"
    control_network
    etcd_start
    control_certs
    apiserver_start
    client_certs
}

control_finish() {
    apiserver_wait
    controllers_start
    dns_start
    control_rbac
    wait_until 60 "the default service account" --alive kube-controller-manager namespace_ready
    wait_until 60 "the scheduler" --alive kube-scheduler scheduler_ready
}
