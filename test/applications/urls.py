from django.http import HttpResponse
urlpatterns = []
