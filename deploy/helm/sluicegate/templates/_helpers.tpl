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

{{- /* The ports of brokers as YAML: a list of names and numbers; none if all brokers share the bootstrap port. */ -}}
{{- define "sluicegate.brokerPorts" -}}
{{- $listen := .Values.configuration.listen -}}
{{- $ports := list -}}
{{- if not $listen.broker_host -}}
{{- $base := $listen.broker_port_base | default (add1 (include "sluicegate.bootstrapPort" . | int64)) -}}
{{- range .Values.brokerIds -}}
{{- $id := int64 . | toString -}}
{{- $port := get ($listen.broker_port_map | default dict) $id | default (add $base .) -}}
{{- /* Kubernetes allows names of 15 characters. */ -}}
{{- $ports = append $ports (dict "name" (printf "%s-%s" (ternary "broker" "b" (le (len $id) 8)) $id) "port" (int64 $port)) -}}
{{- end -}}
{{- end -}}
{{ toYaml $ports }}
{{- end -}}

{{- /* The sections of the configuration that need connections to other servers than brokers. */ -}}
{{- define "sluicegate.otherServers" -}}
{{- $found := list -}}
{{- with .Values.configuration -}}
{{- if .registries -}}{{- $found = append $found "registries" -}}{{- end -}}
{{- if .otel -}}{{- $found = append $found "otel" -}}{{- end -}}
{{- if dig "sasl" "oauth" dict .upstream -}}{{- $found = append $found "upstream.sasl.oauth" -}}{{- end -}}
{{- end -}}
{{ join ", " $found }}
{{- end -}}

{{- define "sluicegate.configuration" -}}
{{- $added := dict "listen" (dict "advertised_host" (printf "%s.%s.svc.%s" (include "sluicegate.name" .) .Release.Namespace .Values.clusterDomain)) -}}
{{- if and (include "sluicegate.tokenSecret" .) (not .Values.configuration.admin.token) -}}
{{- $_ := set $added "admin" (dict "token_file" "/etc/sluicegate-admin/token") -}}
{{- end -}}
{{- $made := mergeOverwrite $added (deepCopy .Values.configuration) -}}
{{- if $made.listen.broker_host -}}{{- $_ := unset $made.listen "broker_port_base" -}}{{- end -}}
{{- if .Values.policies -}}
{{- $files := $made.topic_files | default list -}}
{{- if not (kindIs "slice" $files) -}}{{- $files = list $files -}}{{- end -}}
{{- range $team, $policy := .Values.policies -}}
{{- $item := dict "path" (printf "/etc/sluicegate-policies/%s/*.yaml" $team) -}}
{{- $_ := set $item "topics" $policy.scope -}}
{{- $files = append $files $item -}}
{{- end -}}
{{- $_ := set $made "topic_files" $files -}}
{{- end -}}
{{ toYaml $made }}
{{- end -}}

{{- define "sluicegate.tokenSecret" -}}
{{- if .Values.adminToken.secretName }}{{ .Values.adminToken.secretName }}{{ else if .Values.adminToken.create }}{{ include "sluicegate.name" . }}-admin{{ end -}}
{{- end -}}
