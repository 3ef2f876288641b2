{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- define "cadre.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- /* The release's name where that already says "cadre", so that "helm install cadre" makes short names. At most 40
characters: with "-operator-metrics" it still has to be the name of a Service. */ -}}
{{- define "cadre.fullname" -}}
{{- $name := include "cadre.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* Deployment, Lease and what belongs to them. */ -}}
{{- define "cadre.operator" -}}
{{- printf "%s-operator" (include "cadre.fullname" .) }}
{{- end }}

{{- /* The Secret with the keys of this install. */ -}}
{{- define "cadre.keys" -}}
{{- printf "%s-keys" (include "cadre.fullname" .) }}
{{- end }}

{{- /* The ServiceAccount as which people call by kubectl-cadre. */ -}}
{{- define "cadre.cli" -}}
{{- printf "%s-cli" (include "cadre.fullname" .) }}
{{- end }}

{{- define "cadre.serviceAccount" -}}
{{- default (ternary (include "cadre.operator" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{- define "cadre.instanceLabels" -}}
app.kubernetes.io/name: {{ include "cadre.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Of the operator's pods; must never change, because the selector of a Deployment cannot. */ -}}
{{- define "cadre.selectorLabels" -}}
{{ include "cadre.instanceLabels" . }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "cadre.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "cadre.instanceLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: cadre
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "cadre.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- /* What the operator and its check have in common. */ -}}
{{- define "cadre.scopeArgs" -}}
- --leader-elect-name={{ include "cadre.operator" . }}
- --keys-secret={{ include "cadre.keys" . }}
{{- with .Values.watchNamespace }}
- --namespace={{ . }}
{{- end }}
{{- end }}

{{- define "cadre.env" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- end }}

{{- /* Where pods of the chart may run and as what. */ -}}
{{- define "cadre.podSpec" -}}
serviceAccountName: {{ include "cadre.serviceAccount" . }}
automountServiceAccountToken: true
{{ include "cadre.podPlace" . }}
{{- end }}

{{- /* The same for any ServiceAccount. */ -}}
{{- define "cadre.podPlace" -}}
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{ include "cadre.tolerations" . }}
{{- end }}

{{- /* Kubernetes leaves pods on a node that is lost for 300 s; here it is 30 s, where the values say nothing about that
taint themselves. Of two tolerations for one taint the shorter one would count. */ -}}
{{- define "cadre.tolerations" -}}
tolerations:
  {{- range $taint := list "node.kubernetes.io/not-ready" "node.kubernetes.io/unreachable" }}
  {{- $said := false }}
  {{- range $.Values.tolerations }}
  {{- if and (eq (default "" .key) $taint) (has (default "" .effect) (list "" "NoExecute")) }}{{ $said = true }}{{ end }}
  {{- end }}
  {{- if not $said }}
  - key: {{ $taint }}
    operator: Exists
    effect: NoExecute
    tolerationSeconds: 30
  {{- end }}
  {{- end }}
  {{- with .Values.tolerations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
