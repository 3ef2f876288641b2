# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154
# Runs programs for Ray, torch and verl outside the cluster, with their workers in pods. Needs suite.sh, group.sh, calls.sh and
# outside.sh.

# Creates the rights of the program's user and of its actors in namespace ship.
programs_rights() {
    local role
    kc create namespace ship >/dev/null
    kc create rolebinding cadre-cli -n ship --clusterrole=cadre-edit --serviceaccount=cadre-system:cadre-cli >/dev/null
    for role in call code edit; do
        kc create rolebinding "actors-$role" -n ship "--clusterrole=cadre-$role" --serviceaccount=ship:default >/dev/null
    done
}

# programs_template SITE-PACKAGES [MODULES]: a template of pods that mount these packages of this machine. verl imports the
# MODULES. The pods may use all CPUs, as actors of Ray may: with a tenth of a CPU, the import of torch takes minutes.
programs_template() {
    jq -n --arg site "$1" --arg verl "$suite_root/tests/verl" --arg modules "${2:-verl_on_cpu,cadre.verl}" '
        [{name: "packages", path: $site}, {name: "verl", path: $verl}] as $folders |
        {VERL_USE_EXTERNAL_MODULES: $modules, VERL_USE_EXTERNAL_PLUGINS: "none", VERL_PLATFORM: "cpu",
            VERL_ENGINE_DEVICE: "cuda", VERL_LOGGING_LEVEL: "ERROR", OMP_NUM_THREADS: "1", TOKENIZERS_PARALLELISM: "false",
            HOME: "/tmp", PYTHONPATH: "/opt/packages:/opt/verl", LOGICAL_GPUS: "4"} as $env |
        {spec: {terminationGracePeriodSeconds: 2,
            volumes: [$folders[] | {name, hostPath: {path}}],
            containers: [{name: "worker", image: "localhost/cadre-python:dev",
                resources: {requests: {cpu: "10m"}, limits: {cpu: "8"}},
                env: [$env | to_entries[] | {name: .key, value}],
                volumeMounts: [$folders[] | {name, mountPath: "/opt/\(.name)", readOnly: true}]}]}}'
}

# of_itself PYTHON-ARGUMENTS...: the output of a program, without the output of its ranks and of verl, and without reports of a
# sanitizer that does not know torch.
of_itself() {
    outside "$@" 2>&1 | grep -vE '^([a-z0-9-]+ \[(rank [0-9,-]+|agent)\] |(INFO|WARNING):|colocated worker base|==[0-9]+==WARNING: ASan)'
}

# as_ray PYTHON-ARGUMENTS...: runs a program for Ray.
as_ray() {
    RAY_ADDRESS=auto CADRE_RAY_IMAGE=localhost/cadre-python:dev CADRE_NAMESPACE=ship of_itself "$@"
}

# programs_verl_tests groups|actors FILE: runs verl's own tests by tests/verl/run.sh, with cadre.verl or without it.
programs_verl_tests() {
    local template=$suite_dir/verl-$1.json modules=verl_on_cpu,cadre.verl site way=()
    [[ $1 == groups ]] || modules=verl_on_cpu way=(--actors)
    site=$("$("$suite_root/deploy/python.sh" large)" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') || return 77
    programs_template "$site" "$modules" >"$template"
    "$devcluster" exec -- env --unset CADRE_OPERATOR RAY_ADDRESS=auto CADRE_RAY_IMAGE=localhost/cadre-python:dev CADRE_NAMESPACE=ship \
        CADRE_RAY_CPU=10m "CADRE_RAY_TEMPLATE=$template" "CADRE_CLIENT_LIBRARY=$CADRE_BUILD_DIR/worker/host/libcadre.so" \
        LOGICAL_GPUS=4 "$suite_root/tests/verl/run.sh" "${way[@]}" "$2"
}
