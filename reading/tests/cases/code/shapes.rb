module A::B
 class C < D
  def f(a); end
  def self.g; end
 end
end
def top; end