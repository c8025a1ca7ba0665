{{- define "weir.labels" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "weir.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "weir.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "weir.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* A value of an environment variable. Helm reads a bare on as true, and writes large numbers as 1e+06. */ -}}
{{- define "weir.setting" -}}
{{- if kindIs "bool" . }}{{ ternary "on" "off" . }}{{ else }}{{ if kindIs "float64" . }}{{ toJson . }}{{ else }}{{ . }}{{ end }}{{ end -}}
{{- end -}}
