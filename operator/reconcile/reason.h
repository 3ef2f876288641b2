// SPDX-License-Identifier: Apache-2.0
// Condition types and reasons: part of the API, listed in docs/api.md. STATUS of `kubectl get` is the reason of Ready.
#pragma once

#define COND_ACCEPTED "Accepted"
#define COND_SCHEDULED "Scheduled"
#define COND_READY "Ready"
#define COND_SUCCEEDED "Succeeded"
#define COND_FAILED "Failed"
#define COND_SUSPENDED "Suspended"
#define COND_GPU_LOST "GPULost" // written when it is True for the first time, and then kept

// Accepted
#define REASON_VALID "Valid"
#define REASON_CHECKING "Checking" // the template's dry run is under way (Unknown)
#define REASON_NOT_SUPPORTED "NotSupported"
#define REASON_RESERVED_ENV "ReservedEnv"
#define REASON_NAME_CONFLICT "NameConflict"
#define REASON_INVALID_TEMPLATE "InvalidTemplate"
#define REASON_COMMAND_REQUIRED "CommandRequired" // runtime Agent: nothing says which command to run
#define REASON_MESH_MISMATCH "MeshMismatch"

// Scheduled; Ready of a waiting group has the same reasons
#define REASON_INVALID_BUNDLES "InvalidBundles" // the PlacementGroups do not have what spec.placement.groups asks for

#define REASON_PLACEMENT_NOT_FOUND "PlacementGroupNotFound"
#define REASON_PLACEMENT_NOT_READY "PlacementGroupNotReady"
#define REASON_PORT_CONFLICT "PortConflict" // another group in the pod has the same rendezvousPort

#define REASON_PENDING "Pending"           // not looked at yet (Unknown)
#define REASON_CREATING "Creating"         // planned, pods are being created
#define REASON_BINDING "Binding"           // pods exist, kube-scheduler has not bound them all
#define REASON_BOUND "Bound"               // True
#define REASON_INFEASIBLE "Infeasible"     // the nodes that exist could never take it
#define REASON_INSUFFICIENT "Insufficient" // fits when other pods leave
#define REASON_QUOTA_EXCEEDED "QuotaExceeded"
#define REASON_FORBIDDEN "Forbidden"      // the API server refused a pod for another reason
#define REASON_BIND_TIMEOUT "BindTimeout" // not all bound in time: given back, planned again after a backoff
#define REASON_TERMINATING "Terminating"  // waits until the pods of the previous attempt are gone
#define REASON_BACKOFF "Backoff"          // waits before the next attempt

// Ready
#define REASON_STARTING "Starting"        // all bound, not all ready
#define REASON_SILENT "Silent"            // an agent is not connected (any more)
#define REASON_RUNNING "Running"          // True
#define REASON_KEYS_CHANGED "KeysChanged" // an agent trusts keys that the operator no longer has
#define REASON_IMAGE "ImagePullFailed"
#define REASON_CONTAINER_CONFIG "ContainerConfigError"
#define REASON_RESTARTING "Restarting"
#define REASON_COMPLETING "Completing" // some ranks have exited 0, others run on

// Succeeded, Failed, Suspended
#define REASON_COMPLETED "Completed" // every rank exited 0
#define REASON_IN_PROGRESS "InProgress"
#define REASON_NO_FAILURE "NoFailure"
#define REASON_MAX_RESTARTS "MaxRestartsExceeded"
#define REASON_WORKER_FAILED "WorkerFailed"         // restartPolicy Never
#define REASON_FAILURE_POLICY "FailurePolicy"       // a rule of failurePolicy says Fail
#define REASON_DEADLINE_EXCEEDED "DeadlineExceeded" // activeDeadlineSeconds
#define REASON_SUSPENDED "Suspended"
#define REASON_NOT_SUSPENDED "NotSuspended"

// GPULost
#define REASON_OFF_THE_BUS "FellOffTheBus"
#define REASON_GPUS_PRESENT "GPUsPresent" // all ranks run again, and none of their GPUs is lost

// Values of lastFailure.reason if Kubernetes gives none
#define FAILURE_ERROR "Error"
#define FAILURE_OOM_KILLED "OOMKilled" // the word of Kubernetes, also for a process of an agent
#define FAILURE_NODE_LOST "NodeLost"
#define FAILURE_POD_DELETED "PodDeleted"
#define FAILURE_AGENT_LOST "AgentLost"
#define FAILURE_GPU_LOST "GPULost"
