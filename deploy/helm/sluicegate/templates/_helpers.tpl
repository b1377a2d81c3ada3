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
{{- $added := dict "listen" (dict "advertised_host" (printf "%s.%s.svc.%s" (include "sluicegate.name" .) .Release.Namespace .Values.clusterDomain)) -}}
{{- if and (include "sluicegate.tokenSecret" .) (not .Values.configuration.admin.token) -}}
{{- $_ := set $added "admin" (dict "token_file" "/etc/sluicegate-admin/token") -}}
{{- end -}}
{{- $made := mergeOverwrite $added (deepCopy .Values.configuration) -}}
{{- if .Values.policies -}}
{{- $files := $made.topic_files | default list -}}
{{- if not (kindIs "slice" $files) -}}{{- $files = list $files -}}{{- end -}}
{{- range $team, $policy := .Values.policies -}}
{{- $item := dict "path" (printf "/etc/sluicegate-policies/%s/*.yaml" $team) -}}
{{- with $policy.scope -}}{{- $_ := set $item "topics" . -}}{{- end -}}
{{- $files = append $files $item -}}
{{- end -}}
{{- $_ := set $made "topic_files" $files -}}
{{- end -}}
{{ toYaml $made }}
{{- end -}}

{{- define "sluicegate.tokenSecret" -}}
{{- if .Values.adminToken.secretName }}{{ .Values.adminToken.secretName }}{{ else if .Values.adminToken.create }}{{ include "sluicegate.name" . }}-admin{{ end -}}
{{- end -}}
