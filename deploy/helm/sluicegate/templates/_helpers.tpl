{{- define "sluicegate.name" -}}
{{- if contains "sluicegate" .Release.Name }}{{ .Release.Name }}{{ else }}{{ printf "%s-sluicegate" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end -}}
{{- end -}}

{{- define "sluicegate.selector" -}}
app.kubernetes.io/name: sluicegate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sluicegate.labels" -}}
{{ include "sluicegate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "sluicegate.bootstrapPort" -}}
{{ splitList ":" .Values.configuration.listen.bootstrap | last }}
{{- end -}}

{{- define "sluicegate.adminPort" -}}
{{ splitList ":" .Values.configuration.admin.listen | last }}
{{- end -}}

{{- define "sluicegate.configuration" -}}
{{- $told := dict "listen" (dict "advertised_host" (printf "%s.%s.svc.%s" (include "sluicegate.name" .) .Release.Namespace .Values.clusterDomain)) -}}
{{ toYaml (mergeOverwrite $told (deepCopy .Values.configuration)) }}
{{- end -}}
