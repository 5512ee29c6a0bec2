# SPDX-License-Identifier: Apache-2.0
"""A Django project in one file: a template with loops and filters, and JSON."""
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "django_app")
SECRET_KEY = "x"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "django_app"
INSTALLED_APPS = []
MIDDLEWARE = ["django.middleware.common.CommonMiddleware", "django.middleware.security.SecurityMiddleware"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates"}]

from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.template import Context, Template  # noqa: E402
from django.urls import path  # noqa: E402

TEXT = "{% for r in rows %}<tr>{% for c in r %}<td>{{ c|escape }}</td>{% endfor %}</tr>{% endfor %}"


def page(request):
    return HttpResponse(Template(TEXT).render(Context({"rows": [[i * j for i in range(10)] for j in range(20)]})))


def data(request):
    return JsonResponse({"rows": [{"a": i, "b": str(i)} for i in range(200)]})


urlpatterns = [path("page", page), path("data", data)]
application = get_wsgi_application()
